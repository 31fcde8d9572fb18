import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;

/** Asks for metadata and aggregates as BI tools do, and prints what comes back, a line each. */
public class Metadata {
    private static void print(String name, ResultSet rows, int... columns) throws SQLException {
        while (rows.next()) {
            StringBuilder line = new StringBuilder(name);
            for (int column : columns) {
                line.append(' ').append(rows.getString(column));
            }
            System.out.println(line);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Properties given = new Properties();
        given.put("user", "ann");
        given.put("password", System.getenv("TACIT_TOKEN"));
        given.put("sslmode", arguments[1]);
        try (Connection connection = DriverManager.getConnection(arguments[0], given)) {
            DatabaseMetaData data = connection.getMetaData();
            System.out.println("product " + data.getDatabaseProductName() + " " + data.getDatabaseMajorVersion());
            print("schema", data.getSchemas(), 1);
            print("table", data.getTables(null, "public", "%", new String[] {"TABLE", "VIEW"}), 3, 4);
            print("column", data.getColumns(null, "public", "people", "%"), 4, 6, 18);
            print("key", data.getPrimaryKeys(null, "public", "people"), 4);
            print("index", data.getIndexInfo(null, "public", "people", false, false), 6);
            print("privilege", data.getTablePrivileges(null, "public", "people"), 6);
            count("count", connection, 8); // From the sixth time on, the driver prepares and asks for binary results.
            connection.setAutoCommit(false);
            try (PreparedStatement query = connection.prepareStatement("SELECT purchases, COUNT(*) FROM people GROUP BY 1")) {
                query.setFetchSize(4);
                print("group", query.executeQuery(), 1, 2);
            }
            try (Statement statement = connection.createStatement()) {
                statement.executeUpdate("DELETE FROM people");
            } catch (SQLException refusal) {
                System.out.println("refused " + refusal.getSQLState());
            }
            connection.rollback();
            System.out.println("valid " + connection.isValid(5));
        }
        given.put("preferQueryMode", "simple"); // The driver writes parameters into the text itself.
        try (Connection connection = DriverManager.getConnection(arguments[0], given)) {
            count("simple", connection, 1);
        }
    }

    private static void count(String name, Connection connection, int times) throws SQLException {
        String sql = "SELECT COUNT(*) FROM people WHERE purchases < ? AND os = ? AND joined > ? AND paying = ?";
        try (PreparedStatement query = connection.prepareStatement(sql)) {
            for (int i = 0; i < times; i++) {
                query.setInt(1, 3);
                query.setString(2, "o'clock");
                query.setDate(3, Date.valueOf("2030-01-01"));
                query.setBoolean(4, false);
                print(name, query.executeQuery(), 1);
            }
        }
    }
}
